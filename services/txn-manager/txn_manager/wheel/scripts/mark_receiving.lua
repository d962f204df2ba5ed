-- Records until when partitions were received. KEYS: the hash of times. ARGV: the time in ms, empty for now, then
-- partitions. A later time that stands there stays, unless it lies in the future: then the clock was set back.
local now = now_ms()
local received_at = now
if ARGV[1] ~= '' then
  received_at = math.min(now, tonumber(ARGV[1]))
end
for index = 2, #ARGV do
  local before = tonumber(redis.call('HGET', KEYS[1], ARGV[index]) or '')
  if not before or before < received_at or before > now then
    redis.call('HSET', KEYS[1], ARGV[index], received_at)
  end
end
