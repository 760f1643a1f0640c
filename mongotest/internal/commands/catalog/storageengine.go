package catalog

import (
	"strings"

	"allium/bson"
	"allium/mongotest/internal/args"
	"allium/mongotest/internal/bsontext"
	"allium/mongotest/internal/srverr"
)

// checkEngines checks the options of storage engines, of which there is one.
func (q *createSpec) checkEngines() error {
	for k := range q.defaults.All() {
		if k != "storageEngine" {
			return args.UnknownField("create.indexOptionDefaults." + k)
		}
	}
	indexes, _ := q.defaults.Lookup("storageEngine").Document()
	for _, options := range []bson.Raw{q.storage, indexes} {
		for name, v := range options.All() {
			doc, ok := v.Document()
			switch {
			case !ok:
				return srverr.New(srverr.BadValue, "'storageEngine.%s' has to be an embedded document.", name)
			case name != "wiredTiger":
				return srverr.New(srverr.InvalidOptions, "%s is not a registered storage engine for this server", name)
			}
			if err := checkWiredTiger(doc); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkWiredTiger checks the options of the storage engine.
func checkWiredTiger(doc bson.Raw) error {
	for k, v := range doc.All() {
		s, ok := v.StringValue()
		switch {
		case k != "configString":
			return srverr.New(srverr.InvalidOptions, "'%s' is not a supported option.", k)
		case !ok:
			return srverr.New(srverr.TypeMismatch, "'configString' must be a string, not of type %s",
				bsontext.TypeName(v.Type))
		case strings.Contains(s, "\x00"):
			return srverr.New(srverr.FailedToParse, "'configString' may not contain a null byte")
		}
		for setting := range strings.SplitSeq(s, ",") {
			key, _, _ := strings.Cut(setting, "=")
			if key = strings.TrimSpace(key); key != "" && !wiredTigerKeys[key] && !strings.ContainsAny(s, "()") {
				return srverr.New(srverr.BadValue, "22: Invalid argument: unknown configuration key '%s'", key)
			}
		}
	}
	return nil
}

// wiredTigerKeys are what the storage engine's manual lets a table be configured by.
var wiredTigerKeys = map[string]bool{"access_pattern_hint": true, "allocation_size": true, "app_metadata": true,
	"assert": true, "block_allocation": true, "block_compressor": true, "cache_resident": true, "checksum": true,
	"colgroups": true, "collator": true, "columns": true, "dictionary": true, "encryption": true, "exclusive": true,
	"format": true, "huffman_key": true, "huffman_value": true, "ignore_in_memory_cache_size": true,
	"immutable": true, "import": true, "internal_key_max": true, "internal_key_truncate": true,
	"internal_page_max": true, "key_format": true, "key_gap": true, "leaf_key_max": true, "leaf_page_max": true,
	"leaf_value_max": true, "log": true, "lsm": true, "memory_page_image_max": true, "memory_page_max": true,
	"os_cache_dirty_max": true, "os_cache_max": true, "prefix_compression": true, "prefix_compression_min": true,
	"split_pct": true, "tiered_storage": true, "type": true, "value_format": true, "verbose": true,
	"write_timestamp_usage": true}
