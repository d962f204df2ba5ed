"""Between Pravega's messages on key-value tables and the domain's values (controller-grpc-api 5.9). Pure functions."""

from api_gateway.edge.errors import BadRequestError
from api_gateway.pravega.convert import name_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import TableConfig, check_table_config
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import TableId


def table_of(info: pb.KeyValueTableInfo) -> TableId:
    """Raises BadRequestError."""
    if not info.scope:
        raise BadRequestError("the scope is empty")
    if not info.kvtName:
        raise BadRequestError("the table's name is empty")
    return TableId(name_of(info.scope), name_of(info.kvtName))


def table_config_of(message: pb.KeyValueTableConfig) -> TableConfig:
    """As sent; checked before the table's name is looked at. Raises BadRequestError."""
    config = TableConfig(
        partitions=message.partitionCount,
        primary_key_length=message.primaryKeyLength,
        secondary_key_length=message.secondaryKeyLength,
        rollover_size_bytes=message.rolloverSizeBytes,
    )
    try:
        check_table_config(config)
    except InvalidArgumentError as error:
        raise BadRequestError(str(error)) from error
    return config


def table_config_message(id: TableId, config: TableConfig) -> pb.KeyValueTableConfig:
    return pb.KeyValueTableConfig(
        scope=id.scope,
        kvtName=id.name,
        partitionCount=config.partitions,
        primaryKeyLength=config.primary_key_length,
        secondaryKeyLength=config.secondary_key_length,
        rolloverSizeBytes=config.rollover_size_bytes,
    )
