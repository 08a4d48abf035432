-- SPDX-License-Identifier: GPL-2.0-or-later
-- etc/job_submit.lua.example without a slurmctld:
--   lua wish_tool.lua FILE parse TEXT…                as wish_tool.cc prints it
--   lua wish_tool.lua FILE submit|modify COMMENT EXTRA…
-- "-" is a comment or extra that the job does not have. For each pair a line with what slurmctld would get back, then
-- a line for each that the job's author would read.
local file, what = arg[1], arg[2]
local told = {}

slurm = {
  SUCCESS = 0,
  ERROR = -1,
  log_user = function(format, ...) table.insert(told, string.format(format, ...)) end,
}

-- The fields that a job description has for it, and no way to change them.
local function job_desc(comment, extra)
  local fields = {comment = comment ~= "-" and comment or nil, extra = extra ~= "-" and extra or nil}
  return setmetatable({}, {
    __index = function(_, name)
      assert(name == "comment" or name == "extra", "read " .. name)
      return fields[name]
    end,
    __newindex = function(_, name) error("wrote " .. name) end,
  })
end

assert(dofile(file) == slurm.SUCCESS)

for at = 3, #arg, what == "parse" and 1 or 2 do
  if what == "parse" then
    local wish = flex_start.parse_wish(arg[at])
    local run, wait = wish.run and string.format("%d", wish.run), wish.wait and string.format("%d", wish.wait)
    print(string.format("run=%s wait=%s ontimeout=%s", run or "-", wait or "-", wish.ontimeout or "-"))
    told = wish.problems
  elseif what == "submit" then
    print(slurm_job_submit(job_desc(arg[at], arg[at + 1]), {}, 1000))
  else
    print(slurm_job_modify(job_desc(arg[at], arg[at + 1]), {}, {}, 1000))
  end
  for _, line in ipairs(told) do print("! " .. line) end
  told = {}
end
