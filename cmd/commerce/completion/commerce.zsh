#compdef commerce
# Completion of commerce for zsh. To load it, after compinit: source <(commerce completion zsh)
_commerce() {
	local -a found
	local word help
	while IFS=$'\t' read -r word help; do
		found+=("${word//:/\\:}:$help")
	done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	if (( $#found )); then
		_describe commerce found
	else
		_files
	fi
}
compdef _commerce commerce
