-- How many ms ago a partition was last listened to, nothing if that is unknown. KEYS: the hash of times. ARGV: partition.
local heard = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '')
return heard and math.max(0, now_ms() - heard)
