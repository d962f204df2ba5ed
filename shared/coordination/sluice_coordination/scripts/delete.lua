-- Remove a document if it is at the expected version.
-- KEYS: documents (hash: id -> "version json"), ids (sorted set). ARGV: id, expected version.
-- Returns {1, the version removed}, or {0, version there or ""}.
local found = redis.call('HGET', KEYS[1], ARGV[1])
local version = found and string.match(found, '^(%d+) ') or ''
if version ~= ARGV[2] then
  return {0, version}
end
redis.call('HDEL', KEYS[1], ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
return {1, version}
