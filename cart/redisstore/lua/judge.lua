-- For a change that is refused whatever the cart holds: says whether it is a
-- repeat or comes too late, which counts before its own refusal. Changes nothing.

return judge() or reply('applied')
