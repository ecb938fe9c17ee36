BEGIN TRANSACTION;
CREATE TABLE accounts (
	id INTEGER NOT NULL, 
	tenant INTEGER NOT NULL, 
	payer INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	place INTEGER NOT NULL, 
	key_id VARCHAR(32) NOT NULL, 
	salt BLOB NOT NULL, 
	digest BLOB NOT NULL, 
	revoked BIGINT, 
	PRIMARY KEY (id), 
	UNIQUE (tenant, name), 
	FOREIGN KEY(tenant) REFERENCES tenants (id), 
	FOREIGN KEY(payer) REFERENCES payers (id), 
	UNIQUE (key_id)
);
INSERT INTO "accounts" VALUES(1,1,1,'alice',0,'af9920e75d426a59',X'4341D7586BA1CFAA9D7BF37F24925E0A',X'A83BE810A932BFC25895D84C91C013A9244510475CC7F2E225B4424CD9D5B4BD',NULL);
INSERT INTO "accounts" VALUES(2,1,2,'bob',1,'bf1062dc7fe9856f',X'F2FA18406B769967928D5C7E186D5F21',X'2242CB25418E88C8BE309507E3F7C181FFEFC71C3F2C0A0F5419067854EFF9A8',1795344061);
CREATE TABLE attested (
	tenant INTEGER NOT NULL, 
	window BIGINT NOT NULL, 
	log VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	PRIMARY KEY (tenant, window), 
	UNIQUE (tenant, name), 
	FOREIGN KEY(tenant) REFERENCES tenants (id)
);
CREATE TABLE charges (
	tenant INTEGER NOT NULL, 
	window BIGINT NOT NULL, 
	number INTEGER NOT NULL, 
	vector BLOB NOT NULL, 
	PRIMARY KEY (tenant, window, number)
);
CREATE TABLE documents (
	tenant INTEGER NOT NULL, 
	slot INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	text TEXT NOT NULL, 
	vector BLOB NOT NULL, 
	PRIMARY KEY (tenant, slot), 
	UNIQUE (tenant, name), 
	FOREIGN KEY(tenant) REFERENCES tenants (id)
);
INSERT INTO "documents" VALUES(1,4,'sample-0724','Message of 17 October. Patient: When I lie on my right side it gets weaker after 84 minutes. My daughter had the same thing at 37 and was treated with roalticine for five weeks. Reply of Dr Nurcombe: Weigh yourself every Monday and tell Flouta at the desk if you lose more than 9 kilos. I have written a referral to Flernor Brearthley, who sees people with frozen shoulder every Wednesday. Ask Ada Fenn.',X'9A02CBFA4D013505E703B3FEB3FE7EF94D011C09B3FE4D0166FD19FC66FDE703');
INSERT INTO "documents" VALUES(1,6,'sample-0675','Draft record of the 18th general meeting, Zinford Chess Circle. The old stove used 50 bundles of wood in November, twice the usual amount. A collection for Bresis Tadish, who broke a neck on the ice, brought in 1534 crowns. Votes and tasks: The insurance is extended to the display boards for another 37 crowns. The youth group receives 707 crowns for display boards and reports back in June. Ask Ada Fenn.',X'4CFD810465FC8104E7009B039B0365FC17F619FFE70065FCB4024CFDB4028104');
INSERT INTO "documents" VALUES(1,1,'sample-1084','Call-out of 5 April, customer Maixmoor Joinery. The fault first appeared on Sunday when a batch of cork was fed at double speed. We found fine sand on the hydraulic ram and a hairline crack of nine millimetres below it. Measures on site: Replaced the conveyor chain with part BT-7525 and torqued the bolts to 76 newton metres. Handed the key of the guard switch to Stietiel Cieser, receipt GX-337. Ask Ada Fenn.',X'C6F97D023F0100007D027D02000088F805FBFB047D02C6F900003A067D02C1FE');
INSERT INTO "documents" VALUES(1,2,'sample-1171','Consultation GC-8321. Patient: A neighbour told me to rub it with barley water, which I did for a fortnight, to no effect. My sleep is poor, I wake at 21:15 and cannot settle before dawn. Reply of Dr Shixman: I would repeat the scan at Rouxstead Health Centre, where the new machine resolves six tenths of a millimetre. A shadow of 2 millimetres is checked again after eighteen months, not earlier. Ask Ada Fenn.',X'7F063F03C1FC3F0300001E08C1FC3F03A0017F060000DF04C1FCA00160FEC1FC');
CREATE TABLE payers (
	id INTEGER NOT NULL, 
	tenant INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (tenant, name), 
	FOREIGN KEY(tenant) REFERENCES tenants (id)
);
INSERT INTO "payers" VALUES(1,1,'p');
INSERT INTO "payers" VALUES(2,1,'bob');
CREATE TABLE schema_version (
	number INTEGER NOT NULL, 
	PRIMARY KEY (number)
);
INSERT INTO "schema_version" VALUES(2);
CREATE TABLE spent (
	kind VARCHAR(8) NOT NULL, 
	owner INTEGER NOT NULL, 
	window BIGINT NOT NULL, 
	queries INTEGER NOT NULL, 
	PRIMARY KEY (kind, owner, window)
);
CREATE TABLE tenants (
	id INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	policy TEXT NOT NULL, 
	created BIGINT NOT NULL, 
	next_place INTEGER NOT NULL, 
	edition INTEGER NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "tenants" VALUES(1,'acme','{"budget": 0.39213311985717875, "claim": {"accounts": 4, "capacity": 8, "delta": 1e-08, "embedder": "hashing:16", "epsilon": 1.0, "joint_delta": 1e-06, "joint_epsilon": 1.727821021921606, "payer_queries": 80, "queries": 20, "relation": "replace", "sampler": "table", "scale": null, "sigma": 45.61923370897953, "top": 2, "window": 2592000}, "mechanism": {"capacity": 8, "dimension": 16, "high": null, "low": null, "sampler": "table", "scale": 4096, "shift": 21, "top": 2, "variance": "4364413403/32768"}}',1795344061,2,1);
CREATE TABLE windows (
	tenant INTEGER NOT NULL, 
	number BIGINT NOT NULL, 
	seed BLOB NOT NULL, 
	charged INTEGER NOT NULL, 
	folded INTEGER NOT NULL, 
	state BLOB, 
	PRIMARY KEY (tenant, number), 
	FOREIGN KEY(tenant) REFERENCES tenants (id)
);
COMMIT;
