// Command keibidrop-grpc streams one file through the encrypted gRPC of KeibiDrop.
//
//	keibidrop-grpc send --file FILE                  print "listening ADDR", serve one connection, exit
//	keibidrop-grpc receive --to ADDR --file FILE     fetch the file by StreamFile
//
// It is a peer of the lab's workload files. Record layer, message types and limits are KeibiDrop's own packages (MPL-2.0),
// fetched by scripts/install-peers and not part of this project; what a user has to do with that program's windows is done here by
// two commands. The service does what KeibiDrop's does: read 4 MiB, send one message. The handshake is left out, with a key
// that both ends know: this is for measuring and protects nothing.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	bindings "github.com/KeibiSoft/KeibiDrop/grpc_bindings"
	"github.com/KeibiSoft/KeibiDrop/pkg/config"
	kbc "github.com/KeibiSoft/KeibiDrop/pkg/crypto"
	"github.com/KeibiSoft/KeibiDrop/pkg/session"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// commit is set by the linker.
var commit = "unknown"

func main() {
	if len(os.Args) < 2 {
		usage()
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	file := flags.String("file", "", "the file to send, or to write")
	to := flags.String("to", "", "address of the sender")
	_ = flags.Parse(os.Args[2:])
	var err error
	switch {
	case os.Args[1] == "version":
		fmt.Println("keibidrop-grpc, KeibiDrop", commit)
	case os.Args[1] == "send" && *file != "":
		err = send(*file)
	case os.Args[1] == "receive" && *file != "" && *to != "":
		err = receive(*to, *file)
	default:
		usage()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "keibidrop-grpc:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: keibidrop-grpc send --file FILE | receive --to ADDR --file FILE | version")
	os.Exit(2)
}

// secure is the record layer with the suite that KeibiDrop would choose on this machine.
func secure(conn net.Conn) *session.SecureConn {
	key := sha256.Sum256([]byte("measuring"))
	return session.NewSecureConn(conn, key[:], kbc.SupportedCiphers()[0])
}

// service serves one file.
type service struct {
	bindings.UnimplementedKeibiServiceServer
	path string
}

func (s *service) StreamFile(req *bindings.StreamFileRequest, stream bindings.KeibiService_StreamFileServer) error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	total := uint64(info.Size())
	buf := make([]byte, config.GRPCStreamBuffer)
	for offset := req.StartOffset; offset < total; {
		n, err := file.ReadAt(buf[:min(uint64(config.BlockSize), total-offset)], int64(offset))
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			return io.ErrUnexpectedEOF
		}
		message := &bindings.StreamFileResponse{Data: buf[:n], Offset: offset, TotalSize: total}
		if err := stream.Send(message); err != nil {
			return err
		}
		offset += uint64(n)
	}
	return nil
}

// closing tells when a connection is closed.
type closing struct {
	net.Conn
	once sync.Once
	done chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// single accepts one connection, and ends when that does.
type single struct {
	conn *closing
	used bool
}

func (l *single) Accept() (net.Conn, error) {
	if l.used {
		<-l.conn.done
		return nil, io.EOF
	}
	l.used = true
	return l.conn, nil
}

func (l *single) Close() error   { return nil }
func (l *single) Addr() net.Addr { return l.conn.LocalAddr() }

func send(path string) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("listening", listener.Addr())
	conn, err := listener.Accept()
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(config.GRPCMaxMsgSize), grpc.MaxSendMsgSize(config.GRPCMaxMsgSize))
	bindings.RegisterKeibiServiceServer(server, &service{path: path})
	err = server.Serve(&single{conn: &closing{Conn: secure(conn), done: make(chan struct{})}})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func receive(to, path string) error {
	tcp, err := net.Dial("tcp", to)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:keibipipe",
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return secure(tcp), nil }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(config.GRPCMaxMsgSize), grpc.MaxCallSendMsgSize(config.GRPCMaxMsgSize)))
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := bindings.NewKeibiServiceClient(conn).StreamFile(context.Background(), &bindings.StreamFileRequest{Path: "file"})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	var got, total uint64
	for {
		message, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
		if _, err := file.WriteAt(message.Data, int64(message.Offset)); err != nil {
			return errors.Join(err, file.Close())
		}
		got, total = got+uint64(len(message.Data)), message.TotalSize
	}
	if err := file.Close(); err != nil {
		return err
	}
	if got != total {
		return fmt.Errorf("%d bytes came of %d", got, total)
	}
	return nil
}
