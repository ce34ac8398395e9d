\set from random(1, 20)
\set to random(1, 20)
begin;
select balance from account where id = :from;
update account set balance = balance - 1 where id = :from;
update account set balance = balance + 1 where id = :to;
insert into history values (:from, :to);
commit;
