-- A change that a retry would make again: nothing recognizes it.

local find_repeat, remember_change, hide_stamps, remember
