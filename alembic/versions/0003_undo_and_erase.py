"""What undo and erase need: the run of an operation, the digests of what was erased, and their key.

Revision: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute('alter table supersede.operation add column run text collate "C"')
    op.execute(
        "create index operation_run_idx on supersede.operation (namespace, run, stamp) where run is not null"
    )
    op.execute(
        "create index operation_undo_idx on supersede.operation (namespace, (event ->> 'stamp')) "
        "where verb = 'undo'"
    )
    op.execute('alter table supersede.erasure add column value_digest text collate "C"')
    op.execute("create index erasure_value_digest_idx on supersede.erasure (namespace, value_digest)")
    op.execute("""
create table supersede.secret (
    only_row boolean not null default true,
    erasure_key bytea not null,
    constraint secret_pkey primary key (only_row),
    constraint secret_only_row check (only_row))
""")
    op.execute(
        "comment on table supersede.secret is "
        "'The key of the digests in erasure; one row, for the owner alone.'"
    )
    # Two random UUIDs have 244 random bits; pgcrypto would be one more extension to ask for.
    op.execute(
        "insert into supersede.secret (erasure_key) "
        "select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))"
    )


def downgrade() -> None:
    op.execute("drop table supersede.secret")
    op.execute("drop index supersede.erasure_value_digest_idx")
    op.execute("alter table supersede.erasure drop column value_digest")
    op.execute("drop index supersede.operation_undo_idx")
    op.execute("drop index supersede.operation_run_idx")
    # Functions live outside the revisions; those whose bodies name the column go with it.
    op.execute("alter table supersede.operation drop column run cascade")
