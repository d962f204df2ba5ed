-- Puts a part of a fill aside. KEYS: the staging key. ARGV: the fill's token, how many members the key must hold, 0 to
-- begin anew, ms after which it may be forgotten, then pairs of a timer and its delay in ms.
-- Returns the number of members, or -1 if the fill is void: forgotten, or another one began.
local staging, token, members = KEYS[1], ARGV[1], tonumber(ARGV[2])
if members == 0 then
  redis.call('UNLINK', staging)
  redis.call('ZADD', staging, 'inf', token)
elseif not is_staged(staging, token, members) then
  return -1
end
local now, set = now_ms(), {}
for index = 4, #ARGV, 2 do
  set[#set + 1] = now + tonumber(ARGV[index + 1])
  set[#set + 1] = ARGV[index]
end
if #set > 0 then
  redis.call('ZADD', staging, unpack(set))
end
redis.call('PEXPIRE', staging, ARGV[3])
return redis.call('ZCARD', staging)
