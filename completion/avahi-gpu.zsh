#compdef avahi-gpu
# Completion of avahi-gpu for zsh:
#   eval "$(avahi-gpu completion zsh)"     behind compinit
# or as _avahi-gpu in a folder of $fpath.

_avahi_gpu() {
    local program=${words[1]/#\~/$HOME}
    local -a answer
    answer=("${(@f)$("$program" _complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null </dev/null)}")
    local kind=${answer[1]}
    shift answer
    case $kind in
        files)
            [[ $words[CURRENT] == --*=* ]] && compset -P '*='
            _files
            ;;
        folders)
            [[ $words[CURRENT] == --*=* ]] && compset -P '*='
            _files -/
            ;;
        list) (( $#answer )) && _describe 'node' answer -S '' ;;
        words) (( $#answer )) && _describe 'avahi-gpu' answer ;;
    esac
}

if [[ ${funcstack[1]} == _avahi-gpu ]]; then
    _avahi_gpu "$@" # this file is the function, as zsh loads it from $fpath
else
    compdef _avahi_gpu avahi-gpu
fi
