# Completion of avahi-gpu for fish:
#   avahi-gpu completion fish | source
# or as avahi-gpu.fish in ~/.config/fish/completions or a vendor_completions.d.

function __avahi_gpu_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program (string replace -r '^~' -- $HOME $words[1])
    set -l answer (command $program _complete fish $words[2..-1] "$current" 2>/dev/null </dev/null)
    # of --python=/opt/v the path is completed
    set -l option (string match -r -- '^--[^=]*=' "$current")
    set -l value (string replace -r -- '^--[^=]*=' '' "$current")
    switch "$answer[1]"
        case files
            __fish_complete_path $value | string replace -r -- '^' "$option"
        case folders
            __fish_complete_directories "$value" | string replace -r -- '^' "$option"
        case words list
            set -e answer[1]
            string join -- \n $answer
    end
end

complete -c avahi-gpu -f -a '(__avahi_gpu_complete)'
