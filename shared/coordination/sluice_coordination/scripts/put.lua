-- Replace a document if it is at the expected version, or create it if the expected version is empty.
-- KEYS: documents (hash: id -> "version json"), ids (sorted set, all scores 0), the last version given.
-- ARGV: id, expected version or "", json. Returns {1, new version}, or {0, version there or ""}.
local found = redis.call('HGET', KEYS[1], ARGV[1])
local version = found and string.match(found, '^(%d+) ') or ''
if version ~= ARGV[2] then
  return {0, version}
end
-- Versions rise with the server's clock, in microseconds: a server that has lost its data goes on above the old ones.
local time = redis.call('TIME')
local new = tonumber(time[1]) * 1000000 + tonumber(time[2])
local last = tonumber(redis.call('GET', KEYS[3]) or '0')
if new <= last then
  new = last + 1
end
local text = string.format('%.0f', new)
redis.call('SET', KEYS[3], text)
redis.call('HSET', KEYS[1], ARGV[1], text .. ' ' .. ARGV[3])
redis.call('ZADD', KEYS[2], 0, ARGV[1])
return {1, text}
