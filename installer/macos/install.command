#!/bin/sh
# Puts "Medusa Chat.app" beside this file into the user's own applications, and fetches a Python for
# it; no administrator is needed. PYTHON_VERSION is written in where the archive is made.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
from="$here/Medusa Chat.app"
into="$HOME/Applications"
app="$into/Medusa Chat.app"
resources="$app/Contents/Resources"

if [ "$(sysctl -n hw.optional.arm64 2>/dev/null)" != 1 ]; then
    echo "Medusa Chat needs a Mac with Apple silicon: PyTorch isn't made for Intel Macs any more."
    exit 1
fi
if [ ! -d "$from" ]; then
    echo "Medusa Chat.app isn't beside this file. Unpack the archive again, then open it from there."
    exit 1
fi
mkdir -p "$into" "$HOME/.local/bin"
rm -rf "$into/.medusa-chat-new"
cp -R "$from" "$into/.medusa-chat-new"
# macOS marks what comes from the network, and refuses to start what no registered developer has signed.
# Whoever opened this file has decided to.
xattr -dr com.apple.quarantine "$into/.medusa-chat-new" 2>/dev/null || true
# The Python of the version before is used again.
[ ! -d "$resources/python" ] || mv "$resources/python" "$into/.medusa-chat-new/Contents/Resources/python"
rm -rf "$app"
mv "$into/.medusa-chat-new" "$app"
echo "Fetching a Python for Medusa Chat (about 25 MB), which no other program uses."
UV_PYTHON_INSTALL_DIR="$resources/python" UV_CACHE_DIR="$resources/python/.cache" \
    "$resources/uv" python install --no-bin --no-progress cpython-PYTHON_VERSION-macos-aarch64-none || {
    echo "Python could not be fetched. Is the network reachable? The variable UV_PYTHON_INSTALL_MIRROR names"
    echo "a mirror. Then open this file again."
    exit 1
}
# A link would hide where the program lies.
# shellcheck disable=SC2016  # it is replaced when that command runs
printf '#!/bin/sh\nexec "%s/Contents/MacOS/medusa" "$@"\n' "$app" >"$HOME/.local/bin/medusa"
chmod 755 "$HOME/.local/bin/medusa"

echo "Medusa Chat is in $app."
echo "The command for terminals is $HOME/.local/bin/medusa."
# shellcheck disable=SC2016  # the reader's shell replaces it
case ":$PATH:" in
*":$HOME/.local/bin:"*) ;;
*) echo 'To type only "medusa", add this line to ~/.zshrc: export PATH="$HOME/.local/bin:$PATH"' ;;
esac
echo "To remove it, open uninstall.command beside this file."
open "$app"
