# Sourced by the other scripts: the project's own Python environment in .venv, made at first use.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$root/.venv
unset PYTHONPATH PYTHONHOME
for_tests=embedded,light,dev
for_all_tests=$for_tests,local,dev-local
# Builds of torch differ by gigabytes. Of this release, pip takes one for the CPU alone where it finds it.
torch=torch==2.13.0

# A Python 3.11 or newer that can make environments. Every one on the PATH is tried: the first may be a
# shim without a version behind it, or lie in a folder that this user cannot read.
find_python() {
    local name python
    for name in python3 python3.11 python3.12 python3.13; do
        while IFS= read -r python; do
            if "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
                >/dev/null 2>&1; then
                printf '%s\n' "$python"
                return 0
            fi
        done < <(type -ap "$name")
    done
    return 1
}

# What the environment was made from: where it lies, then what the project asks for, with which extras.
stamp() {
    printf '%s\n%s %s\n' "$root" "$(cksum <"$root/pyproject.toml")" "$1"
}

# What was installed for the tests serves those who ask for less.
is_installed() {
    local found
    found=$(cat "$venv/.stamp" 2>/dev/null) || return 1
    [[ $found == "$(stamp "$1")" || $found == "$(stamp "$for_all_tests")" ||
        ($found == "$(stamp "$for_tests")" && $1 != "$for_all_tests") ]] &&
        "$venv/bin/python" -c '' >/dev/null 2>&1
}

# Installs the project with some extras, unless that is done; further arguments are packages in the
# version that is wanted, where the extras leave it open.
install() {
    local extras=$1 python
    if is_installed "$extras"; then
        return 0
    fi
    # One that these scripts made, and that was moved or has lost its Python, is made anew.
    if [[ -e $venv/.stamp ]] && {
        [[ $(head -n 1 "$venv/.stamp") != "$root" ]] || ! "$venv/bin/python" -m pip --version
    } >/dev/null 2>&1; then
        rm -rf "$venv"
    fi
    if [[ ! -e $venv ]]; then
        if ! python=$(find_python); then
            echo "Python 3.11 or newer with venv is needed (Debian: apt install python3 python3-venv)" >&2
            return 1
        fi
        echo "Making $venv with $python" >&2
        mkdir "$venv"
        stamp nothing >"$venv/.stamp"
        "$python" -m venv "$venv"
    fi
    echo "Installing supersede[$extras] there: a minute or two" >&2
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${@:2}" --editable "$root[$extras]"
    stamp "$extras" >"$venv/.stamp"
}
