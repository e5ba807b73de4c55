-- UUIDv7: rises with time, so that btrees grow at one end. PostgreSQL 17 has no function of its own.
create or replace function supersede.new_id() returns uuid
language sql volatile parallel safe
return encode(
    set_bit(set_bit(
        overlay(uuid_send(gen_random_uuid())
            placing substring(int8send((extract(epoch from supersede.clock()) * 1000)::bigint) from 3)
            from 1 for 6),
        52, 1), 53, 1),
    'hex')::uuid;

comment on function supersede.new_id() is 'A new UUIDv7.';
