// Command v2transport-go sends back every message of a BIP324 connection, with the transport of btcd.
//
//	v2transport-go initiator --to ADDR [--garbage N] [--decoys N,N…]
//	v2transport-go responder [--garbage N] [--decoys N,N…]      print "listening ADDR", take one connection
//
// Both are on regtest. The decoys are sent before the version packet, with as many bytes of contents each, and one more goes
// before every hundredth message. It ends when the other end does.
//
// Its search for our terminator ends after 4,094 bytes of garbage, one fewer than BIP324 allows.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/v2transport"
)

// version changes when what is sent does.
const version = "1"

// regtest is the magic fa bf b5 da.
const regtest v2transport.BitcoinNet = 0xdab5bffa

// stream reads through a buffer: the transport asks for garbage byte by byte.
type stream struct {
	io.Reader
	io.Writer
}

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	var err error
	switch os.Args[1] {
	case "initiator", "responder":
		err = run(os.Args[1] == "initiator", os.Args[2:])
	case "version":
		fmt.Println("v2transport-go", version, runtime.Version())
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "v2transport-go:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: v2transport-go initiator --to ADDR | responder, with [--garbage N] [--decoys N,N…] | version")
	os.Exit(2)
}

func run(initiating bool, args []string) error {
	flags := flag.NewFlagSet("v2transport-go", flag.ExitOnError)
	to := flags.String("to", "", "address to connect to")
	garbage := flags.Int("garbage", 0, "bytes of garbage")
	lengths := flags.String("decoys", "", "bytes of contents of each decoy")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var decoys []int
	for _, text := range strings.FieldsFunc(*lengths, func(r rune) bool { return r == ',' }) {
		length, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		decoys = append(decoys, length)
	}
	connection, err := open(initiating, *to)
	if err != nil {
		return err
	}
	defer connection.Close()
	peer := v2transport.NewPeer()
	peer.UseReadWriter(stream{bufio.NewReader(connection), connection})
	if initiating {
		err = peer.InitiateV2Handshake(*garbage)
	} else {
		err = peer.RespondV2Handshake(*garbage, regtest)
	}
	if err != nil {
		return err
	}
	if err := peer.CompleteHandshake(initiating, decoys, regtest); err != nil {
		return err
	}
	return echo(peer)
}

func open(initiating bool, to string) (net.Conn, error) {
	if initiating {
		return net.Dial("tcp", to)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	fmt.Println("listening", listener.Addr())
	return listener.Accept()
}

func echo(peer *v2transport.Peer) error {
	for count := 1; ; count++ {
		contents, err := peer.V2ReceivePacket(nil)
		if errors.Is(err, io.EOF) {
			fmt.Println("sent back", count-1)
			return nil
		}
		if err != nil {
			return err
		}
		if count%100 == 0 {
			if _, _, err := peer.V2EncPacket(make([]byte, 7), nil, true); err != nil {
				return err
			}
		}
		if _, _, err := peer.V2EncPacket(contents, nil, false); err != nil {
			return err
		}
	}
}
