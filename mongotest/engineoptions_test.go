package mongotest_test

import "testing"

// TestEngineOptions asks what create takes of options of storage engines, of views with options of
// validation, and of write concerns, and since when.
func TestEngineOptions(t *testing.T) {
	create := func(options string) string { return `{"create": "x", ` + options + `}` }
	var list []sibling
	refused := func(options, want string) {
		list = append(list, sibling{"8.2", ``, create(options), want})
	}
	for _, engines := range [][2]string{{`"storageEngine": `, ``}, {`"indexOptionDefaults": {"storageEngine": `, `}`}} {
		in := func(doc string) string { return engines[0] + doc + engines[1] }
		refused(in(`{"other": {}}`), `72: other is not a registered storage engine for this server`)
		refused(in(`{"wiredTiger": 1}`), `2: 'storageEngine.wiredTiger' has to be an embedded document.`)
		refused(in(`{"wiredTiger": {"more": "x"}}`), `72: 'more' is not a supported option.`)
		refused(in(`{"wiredTiger": {"configString": 1}}`), `14: 'configString' must be a string, not of type int`)
		refused(in(`{"wiredTiger": {"configString": "invalid=bad"}}`), `2: 22: Invalid argument: unknown configuration key 'invalid'`)
		refused(in(`{"wiredTiger": {"configString": "checksum=on\u0000"}}`), `9: 'configString' may not contain a null byte`)
		list = append(list,
			sibling{"8.2", ``, create(in(`{"wiredTiger": {"configString": "block_compressor=zlib, checksum=on"}}`)), ``},
			sibling{"8.0", ``, create(in(`{"other": {}}`)), ``})
	}
	refused(`"indexOptionDefaults": {"more": 1}`, `40415: BSON field 'create.indexOptionDefaults.more' is an unknown field.`)
	refused(`"viewOn": "c", "pipeline": [], "validationLevel": "x"`, `2: invalid validation level: x`)
	list = append(list,
		sibling{"8.2", ``, `{"insert": "c", "documents": [{}], "writeConcern": {"w": ""}}`, `2: cannot use non-majority 'w' mode  when a host is not a member of a replica set`},
		sibling{"8.2", ``, `{"insert": "c", "documents": [{}], "writeConcern": {"w": null}}`, `2: cannot use non-majority 'w' mode  when a host is not a member of a replica set`},
		sibling{"8.0", ``, `{"insert": "d", "documents": [{}], "writeConcern": {"w": null}}`, ``},
		sibling{"8.2", ``, `{"hello": 1, "saslSupportedMechs": 1}`, `14: UserName must be either a string or an object`},
		sibling{"8.2", ``, `{"hello": 1, "saslSupportedMechs": null}`, `14: UserName must be either a string or an object`},
		sibling{"8.2", ``, `{"hello": 1, "saslSupportedMechs": {"db": "admin"}}`, `2: UserName must contain a field named: user`},
		sibling{"8.2", ``, `{"hello": 1, "saslSupportedMechs": {"db": "admin", "user": "u"}}`, ``},
		sibling{"8.0", ``, `{"hello": 1, "saslSupportedMechs": 1}`, ``})
	for _, s := range list {
		askSiblings(t, []sibling{s}) // each in a deployment of its own
	}
}
