package agent

// Seen is the rule of what an agent has seen.
var Seen = seen
