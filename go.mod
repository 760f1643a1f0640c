module allium

go 1.26
