-- Sets and cancels timers. KEYS: slots. ARGV: for each slot the number of changes, the fill that they belong to, empty for
-- any, then as many pairs of a timer and its delay in ms, empty to cancel it. Returns the positions of slots that are not
-- complete, or of another fill; these are left as they are.
local now, run = now_ms(), run_id()
local lost, at = {}, 1
for position, slot in ipairs(KEYS) do
  local first, last = at + 2, at + 1 + 2 * tonumber(ARGV[at])
  local fill = fill_of(slot, run)
  if fill and (ARGV[at + 1] == '' or ARGV[at + 1] == fill) then
    local set, cancelled = {}, {}
    for index = first, last, 2 do
      if ARGV[index + 1] == '' then
        cancelled[#cancelled + 1] = ARGV[index]
      else
        set[#set + 1] = now + tonumber(ARGV[index + 1])
        set[#set + 1] = ARGV[index]
      end
    end
    if #set > 0 then
      redis.call('ZADD', slot, unpack(set))
    end
    if #cancelled > 0 then
      redis.call('ZREM', slot, unpack(cancelled))
    end
  else
    lost[#lost + 1] = position
  end
  at = last + 1
end
return lost
