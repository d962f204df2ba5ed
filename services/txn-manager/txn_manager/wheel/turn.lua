-- One turn of a timer wheel, a sorted set: the score of a timer is its slot, the second in which it is due. KEYS: the
-- wheel, and the one in whose place it is begun. ARGV: the run of the server that the wheel was begun in, empty to
-- begin it; after how many seconds without a turn it is forgotten; the most timers to return; then pairs of a timer
-- and its delay in ms, empty to take it out. Returns the server's run, its time in ms and the timers that are due;
-- nothing if the wheel is lost: the server is another one, came back from a file, or has removed the key.
local wheel, former = KEYS[1], KEYS[2]
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local marker, time = '*' .. run, redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] == '' then
  redis.call('UNLINK', former)
  redis.call('ZADD', wheel, 'inf', marker)
elseif ARGV[1] ~= run or not redis.call('ZSCORE', wheel, marker) then
  return {}
end
for at = 4, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('ZREM', wheel, ARGV[at])
  else
    redis.call('ZADD', wheel, math.ceil((now_ms + ARGV[at + 1]) / 1000), ARGV[at])
  end
end
redis.call('EXPIRE', wheel, ARGV[2])
local now_s = math.floor(now_ms / 1000)
return {run, now_ms, redis.call('ZRANGEBYSCORE', wheel, '-inf', now_s, 'LIMIT', 0, ARGV[3])}
