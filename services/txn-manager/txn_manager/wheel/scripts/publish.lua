-- Puts a fill in the place of the slot. KEYS: the staging key, the slot. ARGV: the fill's token, how many members the
-- staging key must hold. Returns 1, or -1 if the fill is void: forgotten, or another one began.
local staging, slot = KEYS[1], KEYS[2]
if not is_staged(staging, ARGV[1], tonumber(ARGV[2])) then
  return -1
end
redis.call('ZREM', staging, ARGV[1])
redis.call('ZADD', staging, 'inf', marker_of(run_id(), ARGV[1]))
-- A renamed key keeps its expiry, and renaming onto a large key would free it while all clients wait.
redis.call('PERSIST', staging)
redis.call('UNLINK', slot)
redis.call('RENAME', staging, slot)
return 1
