module sluice/e2e/pfcp-peer

go 1.21

require github.com/wmnsk/go-pfcp v0.0.24
