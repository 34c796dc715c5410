"""`python -m local run` and `demo`: the stack on this machine, until Ctrl-C; and one event all the way."""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn

PORT_TAKEN = 2
REPOSITORY = Path(__file__).resolve().parents[1]


def main() -> None:
    """Parse the command line and do it."""
    arguments = _parse()
    _seclude()
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # a shell may have started us with it ignored
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="local    | %(message)s")
    try:
        status = arguments.do(arguments)
    except KeyboardInterrupt:
        status = 0
    sys.exit(status)


def _run(arguments: argparse.Namespace) -> int:
    from local.model.script import ScriptError  # noqa: PLC0415 (moto takes a second: --help and errors need not wait)
    from local.runtime import Runtime, to_stderr  # noqa: PLC0415
    from local.stack.errors import TemplateError  # noqa: PLC0415
    from local.synthesis import SynthesisError  # noqa: PLC0415

    runtime = Runtime(
        _settings(arguments),
        port=arguments.port,
        aws_port=arguments.aws_port,
        model_port=arguments.model_port,
        socket_port=arguments.socket_port,
        model_script=arguments.model_script,
        model_url=arguments.model_url,
        reload=arguments.reload,
        out=arguments.out,
        code=arguments.code,
        say=to_stderr,
    )
    try:
        runtime.start()
        ready = {"ready": True, "api": runtime.api, "aws": runtime.aws, "model": runtime.model}
        sockets = {"websocket": runtime.websocket, "management": runtime.management}
        print(json.dumps({**ready, **sockets, "outputs": runtime.outputs}), flush=True)  # noqa: T201
        while True:
            time.sleep(3600)
    except OSError as error:
        return _fail(error, PORT_TAKEN)
    except (SynthesisError, TemplateError, ScriptError) as error:
        return _fail(error, 1)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # ending once is enough
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        runtime.stop()


def _demo(_: argparse.Namespace) -> int:
    from local.demo import main as play  # noqa: PLC0415

    return play()


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m local", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="run | demo")
    demo = commands.add_parser("demo", help="watch one event go all the way")
    demo.set_defaults(do=_demo)
    run = commands.add_parser("run", help="run the stack on this machine")
    run.set_defaults(do=_run)
    run.add_argument("--port", type=int, default=0, help="of the HTTP API; 0 picks one")
    run.add_argument("--aws-port", type=int, default=0, help="of the AWS API")
    run.add_argument("--model-port", type=int, default=0, help="of the model server")
    run.add_argument("--socket-port", type=int, default=0, help="of the WebSocket API")
    model = run.add_mutually_exclusive_group()
    model.add_argument("--model-script", type=Path, metavar="FILE", help="JSON rules for the model's answers")
    model.add_argument("--model-url", metavar="URL", help="an OpenAI-compatible server to ask instead")
    run.add_argument("--reload", action="store_true", help="import changed code under lambdas/ anew")
    run.add_argument(
        "--code", type=Path, default=REPOSITORY, metavar="DIR", help="folder whose lambdas/ is run instead"
    )
    run.add_argument("--settings", nargs="+", action="extend", default=[], metavar="KEY=VALUE", help="as cdk's -c")
    run.add_argument("--env", metavar="NAME", help="the environment of cdk.json")
    run.add_argument("--out", type=Path, metavar="DIR", help="where to synthesize to, instead of a cache")
    arguments = parser.parse_args()
    wrong = [word for word in getattr(arguments, "settings", []) if "=" not in word]
    if wrong:
        parser.error(f"--settings wants KEY=VALUE, not {wrong[0]}")
    return arguments


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    settings = dict(word.split("=", 1) for word in arguments.settings)
    return {**settings, "env": arguments.env} if arguments.env else settings


def _seclude() -> None:
    """The developer's profile, credentials and proxy have no business here."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCOUNT_ID_ENDPOINT_MODE": "disabled",
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


def _fail(error: Exception, status: int) -> int:
    sys.stderr.write(f"error: {error}\n")
    return status


if __name__ == "__main__":
    main()
