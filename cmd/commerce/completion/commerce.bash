# Completion of commerce for bash. To load it: source <(commerce completion bash)
_commerce() {
	local words=("${COMP_WORDS[@]:1:COMP_CWORD}") line
	COMPREPLY=()
	while IFS=$'\t' read -r line _; do
		[[ -z $line ]] || COMPREPLY+=("$line")
	done < <("${COMP_WORDS[0]/#\~\//$HOME/}" complete -- "${words[@]}" 2>/dev/null)
}
complete -o default -F _commerce commerce
