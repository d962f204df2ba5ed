-- How many ms ago a partition was last received, nothing if that is unknown. KEYS: the hash of times. ARGV: partition.
local received_at = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '')
return received_at and math.max(0, now_ms() - received_at)
