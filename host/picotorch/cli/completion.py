"""Define picotorch completion."""

import click
from click import shell_completion

from .command import Choice, command

_SHELLS = ("bash", "zsh", "fish")


@command()
@click.argument("shell", type=Choice(_SHELLS), metavar="|".join(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete commands, options and boards.

    \b
    Examples:
      picotorch completion bash >> ~/.bashrc
      picotorch completion zsh >> ~/.zshrc
      picotorch completion fish > ~/.config/fish/completions/picotorch.fish
    """
    found = shell_completion.get_completion_class(shell)
    assert found is not None  # click has a completion class for each shell of _SHELLS
    click.echo(found(ctx.find_root().command, {}, "picotorch", "_PICOTORCH_COMPLETE").source())
