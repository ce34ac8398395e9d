-- What a person types into psql. What it answers is in session.txt, of psql 15.
create table author(id serial primary key, name text not null unique, born date default current_date);
create table book(
    isbn varchar(13) not null primary key,
    author_id integer references author(id) on delete cascade,
    price numeric(10,2),
    sold boolean default false
);
create index book_price on book(price) where price > 10;
create view cheap as select isbn from book where price < 5;
\qecho '== catalog'
\dt
\d author
\d book
\d cheap
\di
\l
select current_database(), current_schema(), version() like 'PostgreSQL 15%' as known;
\qecho '== one request, several statements'
insert into author(name, born) values ('Ann', '1970-01-02')\; insert into author(name, born) values ('Bob', null);
insert into author(name) values ('Cid')\; insert into author(name) values ('Ann');
\qecho :LAST_ERROR_SQLSTATE
select id, name, born from author order by id;
\qecho '== transactions'
begin;
insert into book values ('1', 1, 9.5, true) returning *;
savepoint before;
insert into book values ('1', 2, 1, false);
\qecho :LAST_ERROR_SQLSTATE
select 1;
\qecho :LAST_ERROR_SQLSTATE
rollback to before;
insert into book values ('2', 2, 3, false);
commit;
begin;
delete from book;
select count(*) from book;
insert into book values ('4', 1, 20, false), ('5', 2, 30, false) returning isbn;
update book set price = price + 1 where isbn = '4' returning price;
rollback;
select count(*), sum(price)::float8 as total, sold from book group by sold order by sold;
select * from cheap;
\qecho '== changed tables'
alter table book add constraint fair check (price < 1000), alter column sold set not null, alter isbn type text;
\qecho :LAST_ERROR_SQLSTATE
drop view cheap;
alter table book add constraint fair check (price < 1000), alter column sold set not null, alter isbn type text;
alter table author add unique (born, name);
alter table book drop constraint book_author_id_fkey;
alter table book add foreign key (author_id) references author on delete restrict;
\d book
delete from author where id = 1;
\qecho :LAST_ERROR_SQLSTATE
insert into book values ('6', 1, 2000, true);
\qecho :LAST_ERROR_SQLSTATE
\qecho '== errors'
select * from nosuch;
\qecho :LAST_ERROR_SQLSTATE
select nosuch from book;
\qecho :LAST_ERROR_SQLSTATE
insert into book values ('3', 99, 1, false);
\qecho :LAST_ERROR_SQLSTATE
insert into author(id) values (9);
\qecho :LAST_ERROR_SQLSTATE
selct;
\qecho :LAST_ERROR_SQLSTATE
copy book from 'file';
\qecho :LAST_ERROR_SQLSTATE
