import subprocess
import sys


def test_without_torch_the_command_says_which_extra_to_install(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from medlink.cli.train import app\n"
        "from medlink.errors import EncoderError\n"
        "try:\n"
        "    app(['export', 'minilm', sys.argv[1]], standalone_mode=False)\n"
        "except EncoderError as error:\n"
        "    sys.exit(str(error))\n"
    )

    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "out")], check=False, capture_output=True, text=True
    )

    assert "torch is not installed; install medlink with its `train` extra" in run.stderr
    assert not (tmp_path / "out").exists()
