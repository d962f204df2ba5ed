-- Takes what is due and moves it into the future. KEYS: slots. ARGV: the most to take, ms until a claim expires.
-- Returns the time in ms, then for each slot a list: its fill, empty if it is not complete, and the timers taken.
local now, run = now_ms(), run_id()
local left, expiry = tonumber(ARGV[1]), now + tonumber(ARGV[2])
local answer = {now}
for _, slot in ipairs(KEYS) do
  local fill = fill_of(slot, run)
  local taken = {fill or ''}
  if fill and left > 0 then
    local due = redis.call('ZRANGEBYSCORE', slot, '-inf', now, 'LIMIT', 0, left)
    if #due > 0 then
      local moved = {}
      for index, timer in ipairs(due) do
        moved[2 * index - 1] = expiry
        moved[2 * index] = timer
        taken[index + 1] = timer
      end
      redis.call('ZADD', slot, unpack(moved))
      left = left - #due
    end
  end
  answer[#answer + 1] = taken
end
return answer
