-- Notes until when partitions were listened to. KEYS: the hash of times. ARGV: the time in ms, empty for now, then
-- partitions. A later time that stands there stays, unless it lies in the future: then the clock was set back.
local now = now_ms()
local heard = now
if ARGV[1] ~= '' then
  heard = math.min(now, tonumber(ARGV[1]))
end
for index = 2, #ARGV do
  local before = tonumber(redis.call('HGET', KEYS[1], ARGV[index]) or '')
  if not before or before < heard or before > now then
    redis.call('HSET', KEYS[1], ARGV[index], heard)
  end
end
