package write

import (
	"testing"

	"allium/mongotest/internal/idl/idltest"
)

func TestFeatures(t *testing.T) {
	idltest.CompareFeatures(t, insertStruct, updateStruct, updateEntry, deleteStruct, deleteEntry, bulkStruct, bulkNamespace)
}
