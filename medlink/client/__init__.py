"""A typed client of the service, for threads and for asyncio: splits, retries, and streams of any length."""

from medlink.client.answers import CandidateJson, CodeJson, MentionJson, ReplyJson, ResultJson, SemanticTypeJson
from medlink.client.asynchronous import AsyncClient
from medlink.client.calls import ServiceError
from medlink.client.synchronous import Client

__all__ = [
    "AsyncClient",
    "CandidateJson",
    "Client",
    "CodeJson",
    "MentionJson",
    "ReplyJson",
    "ResultJson",
    "SemanticTypeJson",
    "ServiceError",
]
