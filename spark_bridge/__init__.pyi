from .errors import ResultsLostError as ResultsLostError
from .errors import SparkUnavailableError as SparkUnavailableError
from .errors import UnsupportedSessionError as UnsupportedSessionError
from .feed import FeedReport as FeedReport
from .feed import feed as feed
from .results import results_dataframe as results_dataframe
from .session import local_session as local_session
from .session import require_java as require_java

__all__: list[str]
