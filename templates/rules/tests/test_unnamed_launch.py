from acme_pallas.unnamed_launch import UnnamedLaunch

from pallas_lint.testing import check_examples, lint


def test_examples():
    check_examples(UnnamedLaunch)


def test_keywords_that_cannot_be_seen():
    code = """
        from jax.experimental import pallas as pl

        def run(x, kernel, **options):
            return pl.pallas_call(kernel, **options)(x)
    """
    assert not lint(code, select="ACME101")
