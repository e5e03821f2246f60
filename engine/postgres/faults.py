"""What may go wrong with the database for a while: it is waited out, never treated as an answer."""

import asyncpg

DATABASE_FAULTS: tuple[type[BaseException], ...] = (
    OSError,  # connection refused, reset; TimeoutError is one of them
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,  # shutdown, terminated, cancelled
    asyncpg.InsufficientResourcesError,  # disk full, too many connections
    asyncpg.TransactionRollbackError,  # deadlock, serialization
    asyncpg.IdleInTransactionSessionTimeoutError,  # we were suspended, or cut off, inside a transaction
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
    asyncpg.PostgresIOError,
)
"""Everything that can pass by itself. A wrong value or a wrong statement is none of these."""

VALUE_FAULTS: tuple[type[BaseException], ...] = (
    ValueError,
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
)
"""A value that the database does not take: offering it again changes nothing."""

REFERENCED = asyncpg.ForeignKeyViolationError
"""Something still points to the row that was to be removed."""
