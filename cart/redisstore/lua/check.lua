-- For a change that is refused whatever the cart holds: runs only the checks of
-- change.lua, which take precedence over the change's own refusal. Changes nothing.

return reply('applied')
