# Completion of commerce for fish. To load it: commerce completion fish | source
function __commerce_complete
	set -l words (commandline -opc) (commandline -ct)
	$words[1] complete -- $words[2..-1] 2>/dev/null
end
function __commerce_completes
	test (count (__commerce_complete)) -gt 0
end
complete -c commerce -n __commerce_completes -f
complete -c commerce -a '(__commerce_complete)'
