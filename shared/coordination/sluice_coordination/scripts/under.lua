-- All documents whose ids begin with a prefix, in the order of ids.
-- KEYS: documents (hash: id -> "version json"), ids (sorted set, all scores 0). ARGV: prefix, the most to return.
-- Returns {how many there are, id, "version json", id, ...}; only the number if there are more than that.
local low, high = '-', '+'
if ARGV[1] ~= '' then
  low, high = '[' .. ARGV[1], '(' .. ARGV[1] .. '\255'
end
local count = redis.call('ZLEXCOUNT', KEYS[2], low, high)
local result = {count}
if count > tonumber(ARGV[2]) then
  return result
end
for _, id in ipairs(redis.call('ZRANGEBYLEX', KEYS[2], low, high)) do
  result[#result + 1] = id
  result[#result + 1] = redis.call('HGET', KEYS[1], id)
end
return result
