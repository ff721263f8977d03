module bothways

go 1.24
