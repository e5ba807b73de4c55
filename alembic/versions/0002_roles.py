"""Roles: reader, writer, importer, analyst.

Roles belong to the whole cluster, so they are made only where they are missing and are left behind by
a downgrade: another database may use them. Where the owner may not create roles, `supersede init` prints
the statements for somebody who may.

What each may do is granted in sql/grants.sql, which is applied after every upgrade, since it names
functions.

Revision: 0002
Revises: 0001
"""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ROLES = ("supersede_reader", "supersede_writer", "supersede_importer", "supersede_analyst")


def upgrade() -> None:
    for role in ROLES:
        op.execute(f"""
do $$
begin
    if not exists (select from pg_roles where rolname = '{role}') then
        create role {role} nologin;
    end if;
exception
    when duplicate_object or unique_violation then
        null;  -- another database of this cluster made it at this moment
    when insufficient_privilege then
        null;  -- migrate.missing_roles() tells
end $$
""")


def downgrade() -> None:
    for role in ROLES:
        op.execute(f"""
do $$
begin
    if exists (select from pg_roles where rolname = '{role}') then
        execute 'revoke all on all tables in schema supersede from {role}';
        execute 'revoke all on all routines in schema supersede from {role}';
        execute 'revoke all on schema supersede from {role}';
    end if;
end $$
""")
