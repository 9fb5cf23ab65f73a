"""Complete models: a configuration and a Module each."""

from sonorant.models.tdnn_ctc import TdnnCtc, TdnnCtcConfig

__all__ = ["TdnnCtc", "TdnnCtcConfig"]
