# shellcheck shell=sh
# Where the bootstrap keeps things, for the launcher and for uninstall.command.

# As installer/bootstrap/folders.py says.
data_folder() {
    home=${MEDUSA_HOME:-}
    case $home in
    *[![:space:]]*) ;;
    *)
        echo "$HOME/Library/Application Support/medusa-chat-program"
        return
        ;;
    esac
    # shellcheck disable=SC2088  # the text ~/, which no shell has replaced
    case $home in
    "~") home=$HOME ;;
    "~/"*) home=$HOME/${home#??} ;;
    /*) ;;
    *) home=$PWD/$home ;;
    esac
    echo "${home%/}/program"
}
