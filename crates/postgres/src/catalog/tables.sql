-- The part of PostgreSQL's catalog that clients read. What there is nothing of here stays empty.
create table pg_namespace(oid oid, nspname name, nspowner oid, nspacl text);
create table pg_am(oid oid, amname name, amhandler text, amtype "char");
create table pg_class(
    oid oid, relname name, relnamespace oid, reltype oid default 0, reloftype oid default 0, relowner oid default 10,
    relam oid default 2, relfilenode oid default 0, reltablespace oid default 0, relpages pg_int4 default 0,
    reltuples real default -1, relallvisible pg_int4 default 0, reltoastrelid oid default 0,
    relhasindex bool default 0, relisshared bool default 0, relpersistence "char" default 'p', relkind "char",
    relnatts pg_int2 default 0, relchecks pg_int2 default 0, relhasrules bool default 0, relhastriggers bool default 0,
    relhassubclass bool default 0, relrowsecurity bool default 0, relforcerowsecurity bool default 0,
    relispopulated bool default 1, relreplident "char" default 'd', relispartition bool default 0,
    relrewrite oid default 0, relfrozenxid oid default 0, relminmxid oid default 0, relacl text, reloptions text,
    relpartbound text
);
create table pg_attribute(
    attrelid oid, attname name, atttypid oid, attstattarget pg_int4 default -1, attlen pg_int2, attnum pg_int2,
    attndims pg_int4 default 0, attcacheoff pg_int4 default -1, atttypmod pg_int4 default -1, attbyval bool default 0,
    attstorage "char" default 'p', attalign "char" default 'i', attnotnull bool, atthasdef bool,
    atthasmissing bool default 0, attidentity "char" default '', attgenerated "char" default '',
    attisdropped bool default 0, attislocal bool default 1, attinhcount pg_int4 default 0, attcollation oid default 0,
    attcompression "char" default '', attacl text, attoptions text, attfdwoptions text
);
create table pg_attrdef(oid oid, adrelid oid, adnum pg_int2, adbin text);
create table pg_type(
    oid oid, typname name, typnamespace oid default 11, typowner oid default 10, typlen pg_int2,
    typbyval bool default 0,
    typtype "char" default 'b', typcategory "char" default 'U', typispreferred bool default 0,
    typisdefined bool default 1, typdelim "char" default ',', typrelid oid default 0, typsubscript text default '-',
    typelem oid default 0, typarray oid default 0, typinput text default '-', typoutput text default '-',
    typreceive text default '-', typsend text default '-', typnotnull bool default 0, typbasetype oid default 0,
    typtypmod pg_int4 default -1, typndims pg_int4 default 0, typcollation oid default 0, typdefault text, typacl text
);
create table pg_index(
    indexrelid oid, indrelid oid, indnatts pg_int2, indnkeyatts pg_int2, indisunique bool, indnullsnotdistinct bool
    default 0, indisprimary bool, indisexclusion bool default 0, indimmediate bool default 1,
    indisclustered bool default 0, indisvalid bool default 1, indcheckxmin bool default 0, indisready bool default 1,
    indislive bool default 1, indisreplident bool default 0, indkey text, indcollation text default '',
    indclass text default '', indoption text default '', indexprs text, indpred text
);
create table pg_constraint(
    oid oid, conname name, connamespace oid default 2200, contype "char", condeferrable bool default 0,
    condeferred bool default 0, convalidated bool default 1, conrelid oid, contypid oid default 0,
    conindid oid default 0, conparentid oid default 0, confrelid oid default 0, confupdtype "char" default ' ',
    confdeltype "char" default ' ', confmatchtype "char" default ' ', conislocal bool default 1,
    coninhcount pg_int4 default 0, connoinherit bool default 0, conkey text, confkey text, conpfeqop text,
    conppeqop text, conffeqop text, confdelsetcols text, conexclop text, conbin text, definition text
);
create table pg_description(objoid oid, classoid oid, objsubid pg_int4, description text);
create table pg_shdescription(objoid oid, classoid oid, description text);
create table pg_database(
    oid oid, datname name, datdba oid, encoding pg_int4, datlocprovider "char", datistemplate bool, datallowconn bool,
    datconnlimit pg_int4, datfrozenxid oid, datminmxid oid, dattablespace oid, datcollate text, datctype text,
    daticulocale text, datcollversion text, datacl text
);
create table pg_roles(
    rolname name, rolsuper bool, rolinherit bool, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool,
    rolreplication bool, rolconnlimit pg_int4, rolpassword text, rolvaliduntil timestamptz, rolbypassrls bool,
    rolconfig text, oid oid
);
create view pg_authid as select * from pg_roles;
create view pg_user as select rolname as usename, oid as usesysid, rolcreatedb as usecreatedb, rolsuper as usesuper
    from pg_roles;
create table pg_auth_members(roleid oid, member oid, grantor oid, admin_option bool);
create table pg_collation(oid oid, collname name, collnamespace oid, collprovider "char", collisdeterministic bool);
create table pg_enum(oid oid, enumtypid oid, enumsortorder real, enumlabel name);
create table pg_proc(
    oid oid, proname name, pronamespace oid, proowner oid, prolang oid, prokind "char", prorettype oid,
    proargtypes text, proargnames text, proretset bool, provolatile "char", prosrc text
);
create table pg_sequence(
    seqrelid oid, seqtypid oid, seqstart bigint, seqincrement bigint, seqmax bigint, seqmin bigint, seqcache bigint,
    seqcycle bool
);
create table pg_inherits(inhrelid oid, inhparent oid, inhseqno pg_int4, inhdetachpending bool);
create table pg_trigger(
    oid oid, tgrelid oid, tgparentid oid default 0, tgname name, tgfoid oid default 0, tgtype pg_int2 default 0,
    tgenabled "char" default 'O', tgisinternal bool default 0, tgconstrrelid oid default 0, tgconstrindid oid default 0,
    tgconstraint oid default 0, tgdeferrable bool default 0, tginitdeferred bool default 0, definition text
);
create table pg_rewrite(oid oid, rulename name, ev_class oid, ev_type "char", ev_enabled "char", is_instead bool);
create table pg_policy(
    oid oid, polname name, polrelid oid, polcmd "char", polpermissive bool, polroles text, polqual text,
    polwithcheck text
);
create table pg_statistic_ext(
    oid oid, stxrelid oid, stxname name, stxnamespace oid, stxowner oid, stxstattarget pg_int4, stxkeys text,
    stxkind text, stxexprs text
);
create table pg_publication(oid oid, pubname name, puballtables bool);
create table pg_publication_rel(oid oid, prpubid oid, prrelid oid, prqual text, prattrs text);
create table pg_publication_namespace(oid oid, pnpubid oid, pnnspid oid);
create table pg_depend(classid oid, objid oid, objsubid pg_int4, refclassid oid, refobjid oid, refobjsubid pg_int4,
    deptype "char");
create table pg_foreign_table(ftrelid oid, ftserver oid, ftoptions text);
create table pg_foreign_server(oid oid, srvname name);
create table pg_tablespace(oid oid, spcname name, spcowner oid, spcacl text, spcoptions text);
create table pg_extension(oid oid, extname name, extowner oid, extnamespace oid, extrelocatable bool, extversion text);
create table pg_language(oid oid, lanname name);
create table pg_range(rngtypid oid, rngsubtype oid);
create table pg_opclass(oid oid, opcmethod oid, opcname name, opcnamespace oid, opcdefault bool, opcintype oid,
    opckeytype oid, opcfamily oid);
create table pg_prepared_xacts("transaction" oid, gid text, prepared timestamptz, owner name, database name);
create table pg_stat_activity(
    datid oid, datname name, pid pg_int4, usesysid oid, usename name, application_name text, client_addr text,
    client_hostname text, client_port pg_int4, backend_start timestamptz, xact_start timestamptz,
    query_start timestamptz, state_change timestamptz, wait_event_type text, wait_event text, state text, query text,
    backend_type text
);
create table pg_settings(name text, setting text, unit text, category text, short_desc text);
create table pg_views_(schemaname name, viewname name, viewowner name, definition text);
create view pg_views as select * from pg_views_;
create view pg_matviews as select schemaname, viewname as matviewname, viewowner as matviewowner, definition
    from pg_views_ where 0;
create view pg_tables as
    select n.nspname as schemaname, c.relname as tablename, 'bezant' as tableowner, null as tablespace,
        c.relhasindex as hasindexes, c.relhasrules as hasrules, c.relhastriggers as hastriggers, 0 as rowsecurity
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r';
create view pg_indexes as
    select n.nspname as schemaname, t.relname as tablename, i.relname as indexname, null as tablespace,
        pg_get_indexdef(i.oid) as indexdef
    from pg_index x join pg_class t on t.oid = x.indrelid join pg_class i on i.oid = x.indexrelid
        join pg_namespace n on n.oid = t.relnamespace;
create view information_schema_schemata as
    select 'bezant' as catalog_name, nspname as schema_name, 'bezant' as schema_owner from pg_namespace;
create view information_schema_tables as
    select 'bezant' as table_catalog, n.nspname as table_schema, c.relname as table_name,
        case c.relkind when 'v' then 'VIEW' else 'BASE TABLE' end as table_type,
        case c.relkind when 'v' then 'NO' else 'YES' end as is_insertable_into
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'v');
create view information_schema_views as
    select 'bezant' as table_catalog, schemaname as table_schema, viewname as table_name, definition as view_definition
    from pg_views_;
create view information_schema_columns as
    select 'bezant' as table_catalog, n.nspname as table_schema, c.relname as table_name, a.attname as column_name,
        a.attnum as ordinal_position,
        (select d.adbin from pg_attrdef d where d.adrelid = c.oid and d.adnum = a.attnum) as column_default,
        case when a.attnotnull then 'NO' else 'YES' end as is_nullable, format_type(a.atttypid, -1) as data_type,
        case when a.atttypid in (1042, 1043) and a.atttypmod > 4 then a.atttypmod - 4 end as character_maximum_length,
        case a.atttypid when 21 then 16 when 23 then 32 when 20 then 64 when 700 then 24 when 701 then 53
            when 1700 then case when a.atttypmod > 4 then (a.atttypmod - 4) >> 16 end end as numeric_precision,
        case when a.atttypid in (20, 21, 23, 700, 701) then 2 when a.atttypid = 1700 then 10 end
            as numeric_precision_radix,
        case when a.atttypid in (20, 21, 23) then 0
            when a.atttypid = 1700 and a.atttypmod > 4 then ((a.atttypmod - 4 & 2047) + 1024 & 2047) - 1024 end
            as numeric_scale,
        case when a.atttypid = 1082 then 0 when a.atttypid = 1186 then 6
            when a.atttypid in (1083, 1114, 1184) then iif(a.atttypmod < 0, 6, a.atttypmod) end as datetime_precision,
        null as collation_name, null as domain_name, null as identity_generation, t.typname as udt_name,
        'pg_catalog' as udt_schema, 'NO' as is_identity,
        case a.attgenerated when '' then 'NEVER' else 'ALWAYS' end as is_generated, null as generation_expression
    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        join pg_type t on t.oid = a.atttypid
    where c.relkind in ('r', 'v');
create view information_schema_table_constraints as
    select 'bezant' as constraint_catalog, n.nspname as constraint_schema, k.conname as constraint_name,
        'bezant' as table_catalog, n.nspname as table_schema, c.relname as table_name,
        case k.contype when 'p' then 'PRIMARY KEY' when 'u' then 'UNIQUE' when 'f' then 'FOREIGN KEY' else 'CHECK' end
            as constraint_type, 'NO' as is_deferrable, 'NO' as initially_deferred
    from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace;
create view information_schema_key_column_usage as
    select 'bezant' as constraint_catalog, 'public' as constraint_schema, k.conname as constraint_name,
        'bezant' as table_catalog, 'public' as table_schema, c.relname as table_name, a.attname as column_name,
        e.key + 1 as ordinal_position
    from pg_constraint k join pg_class c on c.oid = k.conrelid join json_each(pg_json(k.conkey)) e
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = e.value
    where k.contype in ('p', 'u', 'f');
create view information_schema_constraint_column_usage as
    select 'bezant' as table_catalog, n.nspname as table_schema, c.relname as table_name, a.attname as column_name,
        'bezant' as constraint_catalog, n.nspname as constraint_schema, k.conname as constraint_name
    from pg_constraint k
        join pg_class c on c.oid = case k.contype when 'f' then k.confrelid else k.conrelid end
        join pg_namespace n on n.oid = c.relnamespace
        join json_each(pg_json(case k.contype when 'f' then k.confkey else k.conkey end)) e
        join pg_attribute a on a.attrelid = c.oid and a.attnum = e.value;
create view information_schema_referential_constraints as
    select 'bezant' as constraint_catalog, 'public' as constraint_schema, k.conname as constraint_name,
        'bezant' as unique_constraint_catalog, 'public' as unique_constraint_schema,
        (select u.conname from pg_constraint u where u.conrelid = k.confrelid and u.conindid = k.conindid)
            as unique_constraint_name, 'NONE' as match_option,
        case k.confupdtype when 'c' then 'CASCADE' when 'n' then 'SET NULL' when 'd' then 'SET DEFAULT'
            when 'r' then 'RESTRICT' else 'NO ACTION' end as update_rule,
        case k.confdeltype when 'c' then 'CASCADE' when 'n' then 'SET NULL' when 'd' then 'SET DEFAULT'
            when 'r' then 'RESTRICT' else 'NO ACTION' end as delete_rule
    from pg_constraint k where k.contype = 'f';
create view pg_statio_all_tables as
    select c.oid as relid, n.nspname as schemaname, c.relname as relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r';
create view information_schema_sequences as
    select null as sequence_catalog, null as sequence_schema, null as sequence_name, null as data_type,
        null as numeric_precision, null as numeric_precision_radix, null as numeric_scale, null as start_value,
        null as minimum_value, null as maximum_value, null as increment, null as cycle_option where 0;
create view pg_sequences as
    select null as schemaname, null as sequencename, null as sequenceowner, null as data_type, null as start_value,
        null as min_value, null as max_value, null as increment_by, null as "cycle", null as cache_size,
        null as last_value where 0;
insert into pg_namespace values (11, 'pg_catalog', 10, null), (2200, 'public', 10, null),
    (13000, 'information_schema', 10, null);
insert into pg_am values (2, 'heap', 'heap_tableam_handler', 't'), (403, 'btree', 'bthandler', 'i');
insert into pg_collation values (100, 'default', 11, 'd', 1), (950, 'C', 11, 'c', 1);
insert into pg_database values (5, 'bezant', 10, 6, 'c', 0, 1, -1, 0, 0, 1663, 'C', 'C', null, null, null);
insert into pg_roles values ('bezant', 0, 1, 0, 0, 1, 0, -1, null, null, 0, null, 10);
insert into pg_tablespace values (1663, 'pg_default', 10, null, null);
insert into pg_type(oid, typname, typlen, typcategory, typarray, typcollation) values
    (16, 'bool', 1, 'B', 1000, 0), (17, 'bytea', -1, 'U', 1001, 0), (18, 'char', 1, 'S', 1002, 0),
    (19, 'name', 64, 'S', 1003, 950), (20, 'int8', 8, 'N', 1016, 0), (21, 'int2', 2, 'N', 1005, 0),
    (23, 'int4', 4, 'N', 1007, 0), (25, 'text', -1, 'S', 1009, 100), (26, 'oid', 4, 'N', 1028, 0),
    (114, 'json', -1, 'U', 199, 0), (700, 'float4', 4, 'N', 1021, 0), (701, 'float8', 8, 'N', 1022, 0),
    (705, 'unknown', -2, 'X', 0, 0), (1042, 'bpchar', -1, 'S', 1014, 100), (1043, 'varchar', -1, 'S', 1015, 100),
    (1082, 'date', 4, 'D', 1182, 0), (1083, 'time', 8, 'D', 1183, 0), (1114, 'timestamp', 8, 'D', 1115, 0),
    (1184, 'timestamptz', 8, 'D', 1185, 0), (1186, 'interval', 16, 'T', 1187, 0), (1700, 'numeric', -1, 'N', 1231, 0),
    (2205, 'regclass', 4, 'N', 2210, 0), (2950, 'uuid', 16, 'U', 2951, 0), (3802, 'jsonb', -1, 'U', 3807, 0);
insert into pg_type(oid, typname, typlen, typcategory, typelem, typcollation)
    select typarray, '_' || typname, -1, 'A', oid, typcollation from pg_type where typarray <> 0;
