# Completion of avahi-gpu for bash 4.4 or newer:
#   eval "$(avahi-gpu completion bash)"
# or as /usr/share/bash-completion/completions/avahi-gpu.

_avahi_gpu() {
    local program=${1/#\~/"$HOME"} answer
    local -a lines
    COMPREPLY=()
    answer=$("$program" _complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null) || return 0
    mapfile -t lines <<<"$answer"
    case ${lines[0]} in
        files) compopt -o default ;;
        folders) compopt -o dirnames ;;
        list) compopt -o nospace ;;&
        list | words) COMPREPLY=("${lines[@]:1}") ;;
    esac
}

complete -F _avahi_gpu avahi-gpu
