-- Timer wheel, format 1: what every script begins with.

-- Milliseconds of Redis's own clock, so that no instance's clock matters.
local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The name of this run of this server. A server that comes back from its files, or a replica that takes over, may have
-- lost the last writes but kept a marker; it has another name.
local function run_id()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)')
end

local function marker_of(run, fill)
  return '*complete/' .. run .. '/' .. fill
end

-- The fill that completed the slot in this run of the server, false if there is none. The marker is the one member
-- with an infinite score.
local function fill_of(slot, run)
  local last = redis.call('ZREVRANGE', slot, 0, 0, 'WITHSCORES')
  local prefix = marker_of(run, '')
  if last[2] == 'inf' and string.sub(last[1], 1, #prefix) == prefix then
    return string.sub(last[1], #prefix + 1)
  end
  return false
end

-- Whether the slot that is being filled aside still holds everything that this fill has put there, and is of no other fill.
local function is_staged(staging, token, members)
  return redis.call('ZSCORE', staging, token) and redis.call('ZCARD', staging) == members
end
