from .data_source import InterlaceDataSource as InterlaceDataSource
from .data_source import connect_spark as connect_spark
from .deployment import prepare_executors as prepare_executors
from .ends_with_query import EndsWithQuery as EndsWithQuery
from .errors import ResultsLostError as ResultsLostError
from .errors import SparkUnavailableError as SparkUnavailableError
from .errors import UnsupportedSessionError as UnsupportedSessionError
from .feed import FeedReport as FeedReport
from .feed import feed as feed
from .feed_batch import feed_batch as feed_batch
from .feed_checks import require_delay as require_delay
from .results import results_dataframe as results_dataframe
from .session import local_session as local_session
from .session import require_java as require_java
from .streaming_feed import StreamingFeed as StreamingFeed
from .streaming_feed import start_feed as start_feed

__all__: list[str]
