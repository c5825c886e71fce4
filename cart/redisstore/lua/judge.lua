-- For a change that is refused whatever the cart holds: says whether it is a repeat or
-- comes too late, which take precedence over its own refusal. Changes nothing.

return reply('applied')
