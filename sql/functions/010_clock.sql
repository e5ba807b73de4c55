-- The one clock. A test database replaces this function; nothing else asks for the time.
create or replace function supersede.clock() returns timestamptz
language sql volatile parallel safe
return clock_timestamp();

comment on function supersede.clock() is 'The time by which operations are stamped.';
